"""Coverage-guided fuzzing of the chunker and text hygiene: `make fuzz MINUTES=3`.

An input that breaks a promise is written into `found/`, where `test_found` holds it from then on. What is merely
interesting goes into the directory given first, and is nobody's to keep.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["memory_plane.core"]):
    from tests.fuzz import properties

if __name__ == "__main__":
    found = Path(__file__).parent / "found"
    atheris.Setup([sys.argv[0], f"-artifact_prefix={found}/", *sys.argv[1:], str(found)], properties.check)
    atheris.Fuzz()
