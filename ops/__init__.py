"""Commands that deploy, check and repair a stage on AWS, and commands for API keys.

A stage is one installation of the service, such as staging or production.

`tools` never imports this package.
"""
