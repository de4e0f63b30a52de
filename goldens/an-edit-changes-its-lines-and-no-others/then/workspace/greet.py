def greet():
    word = "goodbye"
    return word

# no newline at the end