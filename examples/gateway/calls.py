"""Calls a model by an official client library until it is refused: calls.py LIBRARY [stream]"""

import os
import sys

LIBRARY, STREAM = sys.argv[1], "stream" in sys.argv[2:]
PROMPT = "say a word"


def openai_chat():
    import openai

    client = openai.OpenAI()
    messages = [{"role": "user", "content": PROMPT}]

    def call():
        answer = client.chat.completions.create(model="scripted", messages=messages, max_tokens=50, stream=STREAM)
        if STREAM:
            return "".join(part.choices[0].delta.content or "" for part in answer if part.choices)
        return answer.choices[0].message.content

    return call, openai.APIStatusError


def openai_responses():
    import openai

    client = openai.OpenAI()

    def call():
        answer = client.responses.create(model="scripted", input=PROMPT, max_output_tokens=50, stream=STREAM)
        if STREAM:
            return "".join(event.delta for event in answer if event.type == "response.output_text.delta")
        return answer.output_text

    return call, openai.APIStatusError


def anthropic():
    import anthropic as library

    client = library.Anthropic()
    messages = [{"role": "user", "content": PROMPT}]

    def call():
        if STREAM:
            with client.messages.stream(model="scripted", messages=messages, max_tokens=50) as stream:
                return "".join(stream.text_stream)
        return client.messages.create(model="scripted", messages=messages, max_tokens=50).content[0].text

    return call, library.APIStatusError


def google_genai():
    from google import genai
    from google.genai import errors

    client = genai.Client()
    config = {"max_output_tokens": 50}

    def call():
        if STREAM:
            parts = client.models.generate_content_stream(model="scripted", contents=PROMPT, config=config)
            return "".join(part.text or "" for part in parts)
        return client.models.generate_content(model="scripted", contents=PROMPT, config=config).text

    return call, errors.APIError


def main():
    assert not any("sk-canary" in value for value in os.environ.values()), "the provider's key is here"
    call, refused = {"openai-chat": openai_chat, "openai-responses": openai_responses,
                     "anthropic": anthropic, "google-genai": google_genai}[LIBRARY]()
    answered = 0
    try:
        while True:
            assert "word" in call()
            answered += 1
    except refused as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        print(f"answered {answered}; then {type(error).__name__} {status}: {error}")


main()
