"""`make rehearse`: the deployment of a stage, tried on an emulator of AWS on this machine."""
