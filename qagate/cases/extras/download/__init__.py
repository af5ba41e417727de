"""``qagate download``: public benchmarks, and answers that people labelled."""
