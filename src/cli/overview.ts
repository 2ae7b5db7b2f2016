import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve, sep } from "node:path";
import { ALL_PROGRAMS, type FoundProgram, findPrograms } from "../interop/formats/find-programs.ts";
import { storePathOf } from "../stores/store-path.ts";
import { defaultStoreUrl, skeinHome } from "../tree/home.ts";
import { createTerminal, printable } from "./terminal.ts";

const LABEL_WIDTH = 20;
const COMMAND_WIDTH = 29;
/** A store on another machine that does not answer for so long is shown as not available. */
const STORE_MS_MAX = 2000;

/**
 * Prints what `skein` prints without a command: the sessions of the default store, the servers that run, and what other programs have
 * left on this machine. Of their files only the names are read.
 */
export async function printOverview(output: {
  readonly out: (text: string) => void;
  readonly colours: boolean;
}): Promise<void> {
  const terminal = createTerminal(output.out, output.colours);
  const [sessions, servers, programs] = await Promise.all([describeStore(), serverUrls(), findPrograms()]);
  const line = (label: string, text: string) => terminal.line(`${terminal.bold(label.padEnd(LABEL_WIDTH))}${text}`);
  const command = (text: string, what: string) => line("", `${`${text}  `.padEnd(COMMAND_WIDTH)}${terminal.dim(what)}`);
  line("Sessions here", sessions);
  if (servers.length > 0) {
    line("Servers", servers.join(" · "));
    command("skein open", "print their addresses with the tokens");
  }
  if (programs.length > 0) line("On this machine", programs.map(describeProgram).join(" · "));
  if (programs.some(({ name }) => ALL_PROGRAMS.includes(name)))
    command("skein serve --follow all", "view, search and continue them");
  for (const { title, exportCommand } of programs) {
    if (exportCommand !== null) command(exportCommand, `import a session of ${title}`);
  }
  line("Begin", "skein chat · skein serve · skein docs · skein --help");
}

function describeProgram({ title, sessions }: FoundProgram): string {
  return sessions === null ? title : `${title} ${sessions}`;
}

async function describeStore(): Promise<string> {
  const url = defaultStoreUrl();
  const path = storePathOf(url);
  const name = nameOf(url, path);
  // The store and its driver are loaded only if there is one: both take longer than everything else here.
  if (path !== null && !existsSync(path)) return `0 in ${name}`;
  try {
    return `${await within(STORE_MS_MAX, countSessions(url))} in ${name}`;
  } catch (error) {
    return printable(`${name} is not available: ${withoutPassword((error as Error).message)}`, 300);
  }
}

async function countSessions(url: string): Promise<number> {
  const { openNamedStore } = await import("./open-named-store.ts");
  await using store = await openNamedStore(url, { acts: false, fromEnvironment: true });
  return store.count({});
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer after ${ms / 1000} seconds`)), ms).unref();
  });
  return Promise.race([work, late]);
}

/** The store as a person calls it: the directory of the default store, another file, or a URL without its password. */
function nameOf(url: string, path: string | null): string {
  if (path === null) return withoutPassword(url);
  const home = skeinHome();
  const shown = resolve(path) === join(home, "skein.db") ? home : resolve(path);
  const user = homedir();
  return printable(shown.startsWith(user + sep) ? `~${shown.slice(user.length)}` : shown, 300);
}

function withoutPassword(text: string): string {
  return printable(text.replace(/\/\/[^/@\s]*@/g, "//…@"), 300);
}

async function serverUrls(): Promise<readonly string[]> {
  if (!existsSync(join(skeinHome(), "servers"))) return [];
  const { listLocalServers } = await import("../http/local-servers.ts");
  return (await listLocalServers()).map(({ url }) => url);
}
