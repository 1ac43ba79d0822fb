__version__ = "0.0.0"  # in a clone; tools/build.py writes that of a release
