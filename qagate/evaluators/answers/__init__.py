"""The one reader of answers: every reply of a tested model passes it before anybody reads it.

``reader.py`` is the way in. What is no answer is taken out (``replies/said.py``), and what is left
is named: an answer, or one of the states in which there is none (``states.py``,
``refusals.py``). ``state_rules.py`` says what each state is graded as. No reading invents a
text, none takes more than linear time, and to read an answer twice changes nothing.
"""
