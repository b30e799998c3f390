"""Whether autocast is on."""

import torch


def is_autocast(device: torch.device) -> bool:
    """Whether autocast is on for a device; torch raises an error for the meta device, which never casts."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)
