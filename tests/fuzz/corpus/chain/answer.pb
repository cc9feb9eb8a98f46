
too old