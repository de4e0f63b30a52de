x = 1  # TODO: two
