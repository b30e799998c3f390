from .app import create_app as create_app
from .settings import ServerSettings as ServerSettings
