"""Documents with markup: HTML, Markdown and XLIFF, in which only the words change.

`documents.py` translates a document: a format (`html.py`, `markdown.py`, `xliff.py`) finds its segments, the runs of
text with the inline tags among them, and everything else stays as it is, byte for byte. `pieces.py` turns a segment
into text for the model, and `placing.py` puts its tags around the words that they belong to.
"""
