"""A local API Gateway: HTTP in front of the functions of `template.yaml`, in one process."""
