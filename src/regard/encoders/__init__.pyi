from .encoded import Encoded as Encoded
from .image import (
    VGG as VGG,
)
from .image import (
    AlexNet as AlexNet,
)
from .image import (
    ConvNet as ConvNet,
)
from .image import (
    ImageEncoder as ImageEncoder,
)
from .image import (
    LeNet5 as LeNet5,
)
from .image import (
    SmallVGG as SmallVGG,
)
from .image_networks import make_net as make_net
from .lstmn_reader import LSTMNReader as LSTMNReader
from .readers import LSTMReader as LSTMReader
from .readers import SelfAttentionReader as SelfAttentionReader
from .recurrent import RecurrentEncoder as RecurrentEncoder
from .transformer import TransformerEncoder as TransformerEncoder
