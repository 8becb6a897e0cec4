"""Would a test notice? Small changes of core, each tried on the tests of its own room."""
