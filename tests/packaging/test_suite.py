"""The contract suite that an artifact carries runs without the checkout that packed it."""
