from hypothesis import settings

# How long an example takes says something of the machine's load, nothing of the code.
settings.register_profile("memory-plane", deadline=None)
settings.load_profile("memory-plane")
