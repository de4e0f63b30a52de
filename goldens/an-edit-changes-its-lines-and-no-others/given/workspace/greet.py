def greet():
    return "hello"

# no newline at the end