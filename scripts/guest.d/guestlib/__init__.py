"""The parts of scripts/guest; each file says in its first lines what it owns."""


class GuestError(Exception):
    """Trouble of the guest's own, told to the user in one message (exit status 125)."""
