import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * A program whose sessions Skein reads and writes, and how to configure it for a mock model server.
 * @typedef {object} Program
 * @property {"claude-code" | "codex" | "opencode" | "pi"} format
 * @property {string} title
 * @property {string} packageName
 * @property {string} version
 * @property {string} bin the file to run, inside its package
 * @property {boolean} [onNode24] whether it is a script for a newer Node than Skein needs; otherwise it starts by itself
 * @property {(url: string) => Record<string, string>} env
 * @property {(home: string, url: string) => void} prepare writes its settings
 * @property {(words: string) => string[]} begin the arguments that start a session
 * @property {(id: string, words: string) => string[]} resume the arguments that resume one
 * @property {string} sessions the folder below its home that holds its session files
 * @property {(id: string) => { args: string[], talk?: import("./program-place.mjs").Talk }} [compact] what makes it compact a session
 * @property {(home: string, command: readonly string[]) => void} [addMcp] adds the MCP server "skein" to its settings
 * @property {(words: string) => string[]} [ask] the arguments that start a session which may call that server
 * @property {(provider: "anthropic" | "openai") => Program} [onCacheOf] the program set up for the API of a provider; left out if it has one API
 * @property {readonly ("anthropic" | "openai")[]} caches the providers whose APIs it can be set up for
 */

const model = "claude-sonnet-4-5";

/** @type {Program} */
const claudeCode = {
  format: "claude-code",
  title: "Claude Code",
  packageName: "@anthropic-ai/claude-code",
  version: "2.1.328",
  bin: "bin/claude.exe",
  env: (url) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "none",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_TELEMETRY: "1",
  }),
  caches: ["anthropic"],
  prepare: () => {},
  begin: (words) => ["-p", words, "--model", model, "--allowedTools", "Bash,Agent"],
  resume: (id, words) => ["-p", words, "--model", model, "--allowedTools", "Bash,Agent", "--resume", id],
  sessions: ".claude/projects",
  compact: (id) => ({ args: ["-p", "/compact", "--model", model, "--resume", id] }),
  addMcp: (home, [command, ...args]) =>
    write(join(home, "skein-mcp.json"), JSON.stringify({ mcpServers: { skein: { command, args } } })),
  ask: (words) => [
    ...["-p", words, "--model", model, "--mcp-config", "../home/skein-mcp.json"],
    ...["--allowedTools", "mcp__skein__search_sessions"],
  ],
};

/** @type {Program} */
const codex = {
  format: "codex",
  title: "Codex",
  packageName: "@openai/codex",
  version: "0.169.0",
  bin: "bin/codex.js",
  caches: ["openai"],
  env: () => ({ LOCAL_KEY: "none" }),
  prepare: (home, url) =>
    write(
      join(home, ".codex/config.toml"),
      `model = "stand-in"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
[analytics]
enabled = false
`,
    ),
  begin: (words) => ["exec", "--skip-git-repo-check", "-s", "danger-full-access", words],
  resume: (id, words) => ["exec", "--skip-git-repo-check", "-s", "danger-full-access", "resume", id, words],
  sessions: ".codex/sessions",
  compact: (id) => ({
    args: [
      "exec",
      "--skip-git-repo-check",
      "-c",
      "model_auto_compact_token_limit=100",
      "resume",
      id,
      "Remember it well.",
    ],
  }),
  addMcp: (home, [command, ...args]) =>
    appendFileSync(
      join(home, ".codex/config.toml"),
      `[mcp_servers.skein]\nrequired = true\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`,
    ),
  ask: (words) => ["exec", "--skip-git-repo-check", "-s", "danger-full-access", words],
};

/** @type {Program} */
const pi = {
  format: "pi",
  title: "pi",
  packageName: "@mariozechner/pi-coding-agent",
  version: "0.73.1",
  bin: "dist/cli.js",
  caches: ["anthropic", "openai"],
  env: () => ({ PI_OFFLINE: "1", PI_TELEMETRY: "0" }),
  prepare: (home, url) => {
    preparePi(home, { baseUrl: `${url}/v1`, api: "openai-completions" });
    write(join(home, ".pi/agent/settings.json"), JSON.stringify({ compaction: { keepRecentTokens: 10 } }));
  },
  onCacheOf: (provider) => ({
    ...pi,
    prepare: (home, url) =>
      preparePi(
        home,
        provider === "anthropic"
          ? { baseUrl: url, api: "anthropic-messages" }
          : { baseUrl: `${url}/v1`, api: "openai-completions" },
      ),
  }),
  begin: (words) => ["-p", "--provider", "local", "--model", "stand-in", words],
  resume: (id, words) => ["-p", "--provider", "local", "--model", "stand-in", "--session", id, words],
  sessions: ".pi/agent/sessions",
  compact: (id) => ({
    args: ["--mode", "rpc", "--provider", "local", "--model", "stand-in", "--session", id],
    talk: { input: '{"type":"compact"}\n', until: '"command":"compact"' },
  }),
};

/** @type {Program} */
const opencode = {
  format: "opencode",
  title: "opencode",
  packageName: "opencode-ai",
  version: "1.18.33",
  bin: "bin/opencode.exe",
  caches: ["anthropic", "openai"],
  env: () => ({
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  }),
  prepare: (home, url) => {
    const models = {
      "stand-in": { name: "stand-in", cost: { input: 1, output: 2 }, limit: { context: 100_000, output: 4096 } },
    };
    const local = { npm: "@ai-sdk/openai-compatible", options: { baseURL: `${url}/v1`, apiKey: "none" }, models };
    // The configuration lists the models of the imported sessions, because no command names one.
    const anthropic = { options: { baseURL: `${url}/v1`, apiKey: "none" }, models: { [model]: models["stand-in"] } };
    const settings = { autoupdate: false, share: "disabled", model: "local/stand-in", provider: { local, anthropic } };
    write(join(home, ".config/opencode/opencode.json"), JSON.stringify(settings));
  },
  // The program quotes arguments that contain a space.
  begin: (words) => ["run", "--title", "Where the kettle is", ...words.split(" ")],
  resume: (id, words) => ["run", "--session", id, ...words.split(" ")],
  sessions: "",
  addMcp: (home, command) => {
    const path = join(home, ".config/opencode/opencode.json");
    const mcp = { skein: { type: "local", command, enabled: true } };
    write(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), mcp }));
  },
  ask: (words) => ["run", "--title", "An earlier session", ...words.split(" ")],
  onCacheOf: (provider) => {
    const named = ["--model", provider === "anthropic" ? `anthropic/${model}` : "local/stand-in"];
    return {
      ...opencode,
      begin: (words) => ["run", ...named, "--title", "Where the kettle is", ...words.split(" ")],
      resume: (id, words) => ["run", ...named, "--session", id, ...words.split(" ")],
    };
  },
};

/** @type {readonly Program[]} */
export const programs = [
  claudeCode,
  codex,
  pi,
  { ...pi, packageName: "@earendil-works/pi-coding-agent", version: "0.87.1", onNode24: true },
  opencode,
];

/**
 * Writes the models of pi.
 * @param {string} home
 * @param {{ baseUrl: string, api: string }} endpoint
 */
function preparePi(home, endpoint) {
  const models = [{ id: "stand-in", reasoning: true, cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 } }];
  const local = { ...endpoint, apiKey: "none", models };
  write(join(home, ".pi/agent/models.json"), JSON.stringify({ providers: { local } }));
}

/**
 * @param {string} path
 * @param {string} text
 */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
