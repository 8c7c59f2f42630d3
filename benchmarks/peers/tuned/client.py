"""What two lines give: botocore's own session, and no validation of parameters."""

from botocore.config import Config
from botocore.session import Session

dynamodb = Session().create_client(
    "dynamodb", config=Config(parameter_validation=False)
)
