"""Commands that deploy, check and repair a stage on AWS, or manage its keys.

`tools` never imports this package.
"""
