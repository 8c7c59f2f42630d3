"""The commands of a stage on AWS: deploy, check, repair, keys. `tools` never imports them."""
