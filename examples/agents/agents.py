"""External agents: how each is installed, and what it needs in a home folder of its own to use a local provider."""

import json
import os
import shutil
import subprocess
import sys


def write(path, content):
    """Writes a file, as JSON where it isn't text."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def codex(home, work, url):
    provider = f"""
[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
"""
    write(f"{home}/.codex/config.toml", f"""
model = "scripted"
{'model_provider = "scripted"' if url else ""}
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
{provider if url else ""}
[projects."{work}"]
trust_level = "trusted"
""")
    # In the sandbox it doesn't see the settings in the home folder.
    return ([], {"SCRIPTED_KEY": "none"}) if url else (["--model", "scripted"], {})


def gemini(home, _work, url):
    write(f"{home}/.gemini/settings.json", {
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    })
    own = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    return ["--model", "gemini-2.5-flash"], own if url else {}


def qwen(home, _work, url):
    write(f"{home}/.qwen/settings.json", {
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "openai"}},
    })
    own = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1"}
    return [], {"OPENAI_MODEL": "scripted", **(own if url else {})}


def opencode(home, work, url):
    models = {"scripted": {"name": "Scripted", "tool_call": True, "limit": {"context": 100000, "output": 4000}}}
    own = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
    }
    # Through the gateway it is one of the providers that the profile points there. In the sandbox it doesn't see the
    # settings in the home folder.
    name, scripted = ("scripted", {**own, "models": models}) if url else ("openai", {"models": models})
    write(f"{home}/.config/opencode/opencode.json" if url else f"{work}/opencode.json", {
        "autoupdate": False,
        "share": "disabled",
        "model": f"{name}/scripted",
        "provider": {name: scripted},
        "permission": {"bash": "ask", "edit": "ask"},
    })
    names = ("AUTOUPDATE", "LSP_DOWNLOAD", "MODELS_FETCH", "DEFAULT_PLUGINS")
    return [], {f"OPENCODE_DISABLE_{name}": "1" for name in names}


def aider(_home, _work, url):
    quiet = "--no-check-update --analytics-disable --no-show-model-warnings --no-show-release-notes --no-gitignore"
    args = ["--model", "openai/scripted", "--edit-format", "diff", "--map-tokens", "0", *quiet.split()]
    own = {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": f"{url}/v1"}
    return args, {"LITELLM_LOCAL_MODEL_COST_MAP": "True", **(own if url else {})}


def pi(home, _work, url):
    model = {"id": "scripted", "name": "Scripted", "reasoning": False, "input": ["text"], "contextWindow": 100000,
             "maxTokens": 4000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
    write(f"{home}/.pi/agent/models.json", {"providers": {"scripted": provider}})
    return ["--provider", "scripted", "--model", "scripted"], {}


def copilot(home, work, url):
    write(f"{home}/.copilot/config.json", {"trusted_folders": [work]})
    fixed = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": "scripted"}
    own = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "none"}
    return [], {**fixed, **(own if url else {})}


def cline(home, _work, url):
    settings = {"provider": "openai-compatible", "apiKey": "none", "model": "scripted", "baseUrl": f"{url}/v1"}
    provider = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    write(f"{home}/.cline/data/settings/providers.json", {
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
        "providers": {"openai-compatible": provider},
    })
    # Offers, each of which hides its composer once.
    write(f"{home}/.cline/data/settings/cli-notices.json", {
        "shown": {"cline-cli-cline-pass-intro": True, "cline-cli-desktop-launch": True},
    })
    return [], {}


def vibe(home, _work, url):
    write(f"{home}/.vibe/config.toml", f"""
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
""")
    return [], {"SCRIPTED_KEY": "none"}


def openhands(home, _work, url):
    llm = {"model": "openai/scripted", "usage_id": "agent", **({"base_url": f"{url}/v1", "api_key": "none"} if url else {})}
    write(f"{home}/.openhands/agent_settings.json", {
        "kind": "Agent", "llm": llm, "system_prompt_kwargs": {"cli_mode": True, "llm_security_analyzer": True},
    })
    return [], {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


# Name: its package, and what sets it up: (home, work folder, provider's address, or None for the gateway's) ->
# (arguments, variables).
AGENTS = {
    "codex": ("@openai/codex", codex),
    "gemini": ("@google/gemini-cli", gemini),
    "qwen": ("@qwen-code/qwen-code", qwen),
    "opencode": ("opencode-ai", opencode),
    "aider": ("aider-chat", aider),
    "pi": ("@mariozechner/pi-coding-agent", pi),
    "copilot": ("@github/copilot", copilot),
    "cline": ("cline", cline),
    "vibe": ("mistral-vibe", vibe),
    "openhands": ("openhands", openhands),
}

# Those of Python; the others are of npm.
OF_PYTHON = ("aider", "vibe", "openhands")

# Those whose profiles don't say how they are pointed to the gateway.
PAST_GATEWAY = ("pi", "cline", "vibe")


# Those that can't run commands in the sandbox: it has no sockets in the file system, which tmux needs.
PAST_BOX = ("openhands",)


def without_login(name, home):
    """As after an installation: without settings or a key."""
    shutil.rmtree(f"{home}/.{name}", ignore_errors=True)
    return [], {}


def install(name, folder):
    """Its program, installed below the folder if it isn't there yet."""
    package, _ = AGENTS[name]
    place = os.path.join(folder, name)
    if name in OF_PYTHON:
        program = f"{place}/bin/{name}"
        commands = [[sys.executable, "-m", "venv", place], [f"{place}/bin/pip", "install", "--quiet", package]]
    else:
        program = f"{place}/node_modules/.bin/{name}"
        commands = [["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, package]]
    if not os.path.exists(program):
        for command in commands:
            subprocess.run(command, check=True)
    return program
