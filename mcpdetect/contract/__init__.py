"""What a detector author imports: Detector, Spec, Need, AnyOf, Context, Fact."""

from mcpdetect.contract.detector import Context, Detector, finding_key
from mcpdetect.contract.fact import Fact
from mcpdetect.contract.spec import AnyOf, Need, Spec

__all__ = ["AnyOf", "Context", "Detector", "Fact", "Need", "Spec", "finding_key"]
