import { randomUUID } from "node:crypto";
import { access, readdir, realpath } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { openStore, SessionError, type SessionStore } from "../index.ts";
import { isIn } from "../sandboxes/local/follow-links.ts";
import { show } from "../session/errors.ts";
import { viewAsInherited } from "../stores/inherited-view.ts";
import { storePathOf } from "../stores/open-store.ts";
import { findForeignCode } from "../stores/sqlite/foreign-code.ts";
import { isChosenStore, skeinHome } from "../tree/home.ts";
import { isTrustedStore, trustStore } from "./trusted-stores.ts";

/** The note in a store that tells it from any other one at the same path. */
const ID_MARK = "store/id";

/** How a program opens a store. */
export interface NamedStoreOptions {
  /** Whether the user's environment names the store, and not a command line that someone else may have suggested. */
  readonly fromEnvironment?: boolean;
  /** Whether the program acts on what the store records (default: yes). One that only shows or copies it needs no trust. */
  readonly acts?: boolean;
  /** Refuses a store that is not there, with this advice; a mistyped path would otherwise make an empty one. */
  readonly missingAdvice?: string;
  /** Makes the directories above the store, too; those of the store that Skein chooses itself are always made. */
  readonly create?: boolean;
  /** Lists the store as the user's own. */
  readonly trust?: boolean;
  /** Asks whether the store is the user's own; null where nobody can be asked. */
  readonly confirm?: (question: string) => Promise<boolean | null>;
  /** Whether everything in the store goes elsewhere, where what has no force here never has any. */
  readonly copies?: boolean;
  /** Told in one line that what the store records has no force. */
  readonly tell?: (line: string) => void;
}

/**
 * Opens the store that a command line or the environment names.
 *
 * - A store on a server, one in memory, and a file in Skein's home are the user's own. So is a file that the list of trusted
 *   stores has, by its path without links and the id in it.
 * - A file is listed when it is made here, when the user says so with `trust`, or when they say yes to the question.
 * - Any other file is opened as words, where the program acts on what it records: see `viewAsInherited`.
 *
 * @throws {SessionError} `INVALID_OPTION` for a URL that names no store, a store that must be there and is not, or a directory
 * that is missing above one;
 * `STORE_FAILED` for a database of someone else's that would run SQL of its own with every write.
 */
export async function openNamedStore(url: string, options: NamedStoreOptions = {}): Promise<SessionStore> {
  const path = storePathOf(url);
  // By the path that is opened: at `x.db/` there is nothing, but the store opens `x.db`.
  const isMade = path !== null && (await isEmpty(resolve(path)));
  if (isMade && options.missingAdvice !== undefined && !(await storeExists(url))) {
    throw new SessionError("INVALID_OPTION", `There is no store at ${path}; ${options.missingAdvice}.`);
  }
  const store = await openStore(url, { create: options.create === true || isChosenStore(url) });
  if (path === null) return store;
  try {
    const { acts = true, ...rest } = options;
    const trust = options.trust === true || isMade;
    if (!acts && !trust) return store;
    return (await isOwn(store, url, { ...rest, trust })) ? store : await words(store, url, options);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Whether a store is there, as far as a look at the file system tells: one that is no file counts as there. */
export async function storeExists(url: string): Promise<boolean> {
  const path = storePathOf(url);
  return path === null || isThere(resolve(path));
}

async function isOwn(store: SessionStore, url: string, options: NamedStoreOptions): Promise<boolean> {
  const given = storePathOf(url) as string;
  const [path, home] = await Promise.all([realPath(given), realPath(skeinHome())]);
  if (isIn(path, home) && path !== home) return true;
  // A relative path means another file in every directory, so it says no more than one on the command line. A link in
  // Skein's home says nothing about what it leads to.
  const isNamedByUser = options.fromEnvironment === true && isAbsolute(given) && !isIn(resolve(given), skeinHome());
  if (isNamedByUser) return true;
  const id = await readId(store);
  if (id !== null && (await isTrustedStore({ path, id }))) return true;
  const question = `${show(path)} is not listed as your own store. Take the runs, approvals and sandboxes that it records as yours?`;
  if (options.trust !== true && (await options.confirm?.(question)) !== true) return false;
  await trustStore({ path: await realPath(path), id: id ?? (await writeId(store)) });
  return true;
}

async function words(
  store: SessionStore,
  url: string,
  { tell, copies = false }: NamedStoreOptions,
): Promise<SessionStore> {
  const path = resolve(storePathOf(url) as string);
  const code = url.startsWith("sqlite:") ? await findForeignCode(path) : null;
  if (code !== null) {
    throw new SessionError(
      "STORE_FAILED",
      `The database ${path} is not listed as yours and has the ${code}, which would run with every write; remove it, or add --trust-store.`,
    );
  }
  tell?.(
    `${path} is not listed as your own store: runs, approvals and sandboxes that it records have no force. Add --trust-store if it is yours${copies ? "; copied without it, they never have any force in the copy" : ""}.`,
  );
  return viewAsInherited(store);
}

async function readId(store: SessionStore): Promise<string | null> {
  // Where the notes cannot be read, nothing tells this store from another.
  const marks = await store.eraser.readMarks([ID_MARK]).catch(() => null);
  return marks?.get(ID_MARK) ?? null;
}

async function writeId(store: SessionStore): Promise<string> {
  const id = randomUUID();
  await store.eraser.writeMarks(new Map([[ID_MARK, id]]));
  return id;
}

/** The path without links; as it is where there is nothing. */
async function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}

/** Whether there is nothing at a path: no file, or a directory without anything in it. */
async function isEmpty(path: string): Promise<boolean> {
  if (!(await isThere(path))) return true;
  const names = await readdir(path).catch(() => null);
  return names !== null && names.length === 0;
}

/** What cannot be looked at is there, too: only a store that is certainly not there is made here. */
function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}
