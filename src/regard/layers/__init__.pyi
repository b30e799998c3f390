from .cells import GRU as GRU
from .cells import LSTM as LSTM
from .dropout import LockedDropout as LockedDropout
from .glimpse import GlimpseNetwork as GlimpseNetwork
from .glimpse import retina as retina
from .lstmn import LSTMN as LSTMN
from .memory import ExternalMemory as ExternalMemory
