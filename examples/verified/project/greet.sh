#!/bin/sh
# Greets the user.
echo "Hello, $(id -un)"
