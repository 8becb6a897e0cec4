from . import charts as charts
from . import html as html
from . import words as words
