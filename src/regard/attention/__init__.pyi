from .attend import Attention as Attention
from .coverage import Coverage as Coverage
from .guidance import guidance_loss as guidance_loss
from .heads import MultiHead as MultiHead
from .memory import Attended as Attended
from .memory import Memory as Memory
