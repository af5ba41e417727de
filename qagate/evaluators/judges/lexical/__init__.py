"""The lexical judge: grades by rules of language and number, without a model."""
