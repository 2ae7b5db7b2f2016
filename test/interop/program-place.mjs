import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";

/** @typedef {import("./programs.mjs").Program} Program */

const programMaxMs = 120_000;

/**
 * The standard input for a program, and the text in its output that marks the end.
 * @typedef {{ input: string, until: string }} Talk
 */

/**
 * A separate home and project for a program, so that nothing of this machine's user is read or changed.
 * @typedef {object} Place
 * @property {string} folder
 * @property {string} home
 * @property {string} project
 * @property {(args: readonly string[], talk?: Talk) => Promise<string>} run runs the program; resolves to what it printed
 * @property {() => Promise<{ id: string, path: string }>} newest the session that it wrote last
 * @property {(path: string) => Promise<string | null>} helper the session of the sub-agent of the one in this file
 * @property {() => void} remove
 */

/**
 * Creates a home with a mock model server and two files with notes, and nothing else.
 * @param {Program} program
 * @param {readonly string[]} command the command that starts the program
 * @param {string} url
 * @returns {Place}
 */
export function openPlace(program, command, url) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "skein-interop-")));
  const home = join(folder, "home");
  const project = join(folder, "project");
  for (const path of [home, project]) mkdirSync(path);
  writeFileSync(join(project, "notes.txt"), "The blue kettle is in the shed.\n");
  writeFileSync(join(project, "more.txt"), "The key of the shed is under the third pot.\n");
  program.prepare(home, url);
  const env = { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter), HOME: home, ...program.env(url) };
  /** @type {Place["run"]} */
  const run = (args, talk) => runProgram([...command, ...args], { cwd: project, env }, talk);
  return {
    folder,
    home,
    project,
    run,
    newest: async () =>
      program.sessions === "" ? exported(folder, run) : newestFile(join(home, program.sessions), "main"),
    helper: async (path) => {
      if (program.sessions !== "")
        return existsSync(subAgentsOf(path)) ? newestFile(subAgentsOf(path), "sub-agent").path : null;
      const id = /"sessionId":\s*"(ses_\w+)"/.exec(readFileSync(path, "utf8"))?.[1];
      return id === undefined ? null : (await exported(folder, run, id)).path;
    },
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/**
 * @param {readonly string[]} command
 * @param {{ cwd: string, env: Record<string, string> }} options
 * @param {Talk} [talk]
 * @returns {Promise<string>}
 */
function runProgram([file = "", ...args], options, talk = { input: "", until: "" }) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, timeout: programMaxMs, killSignal: "SIGKILL" });
    let printed = "";
    let said = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
      if (printed.includes(talk.until)) child.stdin.end();
    });
    child.stderr.on("data", (chunk) => (said += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(printed);
      else
        reject(
          new Error(`${basename(file)} ${args[0]} ended with ${signal ?? code}: ${(said || printed).slice(-2000)}`),
        );
    });
    child.stdin.write(talk.input);
    if (talk.until === "") child.stdin.end();
  });
}

/**
 * The directory where Claude Code keeps the sessions of a session's sub-agents.
 * @param {string} path
 */
function subAgentsOf(path) {
  return join(path.replace(/\.jsonl$/, ""), "subagents");
}

/**
 * @param {string} folder
 * @param {"main" | "sub-agent"} kind
 * @returns {{ id: string, path: string }}
 */
function newestFile(folder, kind) {
  const found = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
  const paths = found
    .filter((path) => path.endsWith(".jsonl") && (kind === "sub-agent" || !path.includes("subagents")))
    .map((path) => join(folder, path));
  const path = paths.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
  if (path === undefined) throw new Error(`There is no session below ${folder}.`);
  return { id: /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(basename(path))?.[0] ?? "", path };
}

/**
 * The exported session of a program that does not keep sessions in files; by default the newest.
 * @param {string} folder
 * @param {Place["run"]} run
 * @param {string} [chosen]
 */
async function exported(folder, run, chosen) {
  const id = chosen ?? /ses_\w+/.exec(await run(["session", "list"]))?.[0] ?? "";
  const path = join(folder, `${id}.json`);
  writeFileSync(path, await run(["export", id]));
  return { id, path };
}
