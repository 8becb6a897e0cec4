from . import charts as charts
from . import html as html
from . import parquet as parquet
from . import words as words
