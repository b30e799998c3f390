from .experiment import Experiment as Experiment
from .experiment import Trained as Trained
from .recipes import Recipe as Recipe
from .settings import TrainSettings as TrainSettings
from .task import Task as Task
