"""What people run on their own machine; none of it ships to AWS."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
