"""Commands that people run on their own machine; nothing here ships to AWS."""
