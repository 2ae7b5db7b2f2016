import { randomUUID } from "node:crypto";
import { access, readdir, realpath } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { openStore, SessionError, type SessionStore } from "../index.ts";
import { isIn } from "../sandboxes/local/follow-links.ts";
import { show } from "../session/errors.ts";
import { viewAsInherited } from "../stores/inherited-view.ts";
import { storePathOf } from "../stores/store-path.ts";
import { findForeignCode } from "../stores/sqlite/foreign-code.ts";
import { isChosenStore, skeinHome } from "../tree/home.ts";
import { isTrustedStore, trustStore } from "./trusted-stores.ts";

/** The key of the note in a store that holds its id, to tell it from another store at the same path. */
const ID_MARK = "store/id";

/** How a command opens a store. */
export interface NamedStoreOptions {
  /** True if the user's environment names the store. A command line may have been suggested by someone else. */
  readonly fromEnvironment?: boolean;
  /**
   * Whether the command acts on what the store records (default: true). A command that only shows or copies it needs no
   * trust.
   */
  readonly acts?: boolean;
  /** Refuses a missing store with this advice. Otherwise, a mistyped path would create an empty store. */
  readonly missingAdvice?: string;
  /** Creates the directories above the store as well. The directories above the default store are always created. */
  readonly create?: boolean;
  /** Adds the store to the user's list of trusted stores. */
  readonly trust?: boolean;
  /** Asks whether the store belongs to the user; null if no person can be asked. */
  readonly confirm?: (question: string) => Promise<boolean | null>;
  /** True for a copy of the store: records without force here will have no force in the copy either. */
  readonly copies?: boolean;
  /** Prints one line, which says that the store's records have no effect. */
  readonly tell?: (line: string) => void;
}

/**
 * Opens the store that a command line or the environment names, and decides whether it is trusted.
 *
 * - Trusted without a question: a store on a server, one in memory, a file in Skein's home, and a file on the list of
 *   trusted stores, which identifies it by its path without links and the id in it.
 * - A file is added to the list when it is created here, with `trust`, or when the user answers yes to the question.
 * - Any other file whose records the command acts on is opened without trust: see `viewAsInherited`.
 *
 * @throws {SessionError} `INVALID_OPTION` for a URL that names no store, a missing store with `missingAdvice`, or a
 * missing directory above the store; `STORE_FAILED` for an untrusted database with SQL that would run on every write.
 */
export async function openNamedStore(url: string, options: NamedStoreOptions = {}): Promise<SessionStore> {
  const path = storePathOf(url);
  // Checks the path that is really opened: nothing exists at `x.db/`, but the store opens `x.db`.
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
    return (await isOwn(store, url, { ...rest, trust })) ? store : await openUntrusted(store, url, options);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Whether a store exists, as far as the file system shows; a store that is not a file counts as existing. */
export async function storeExists(url: string): Promise<boolean> {
  const path = storePathOf(url);
  return path === null || isThere(resolve(path));
}

async function isOwn(store: SessionStore, url: string, options: NamedStoreOptions): Promise<boolean> {
  const given = storePathOf(url) as string;
  const [path, home] = await Promise.all([realPath(given), realPath(skeinHome())]);
  if (isIn(path, home) && path !== home) return true;
  // A relative path names another file in every directory, so it is no better than one on the command line. A link in
  // Skein's home says nothing about its target.
  const isNamedByUser = options.fromEnvironment === true && isAbsolute(given) && !isIn(resolve(given), skeinHome());
  if (isNamedByUser) return true;
  const id = await readId(store);
  if (id !== null && (await isTrustedStore({ path, id }))) return true;
  const question = `${show(path)} is not listed as your own store. Trust the runs, approvals and sandboxes that it records?`;
  if (options.trust !== true && (await options.confirm?.(question)) !== true) return false;
  await trustStore({ path: await realPath(path), id: id ?? (await writeId(store)) });
  return true;
}

async function openUntrusted(
  store: SessionStore,
  url: string,
  { tell, copies = false }: NamedStoreOptions,
): Promise<SessionStore> {
  const path = resolve(storePathOf(url) as string);
  const code = url.startsWith("sqlite:") ? await findForeignCode(path) : null;
  if (code !== null) {
    throw new SessionError(
      "STORE_FAILED",
      `The database ${path} is not listed as yours and has the ${code}, which would run on every write; remove it, or add --trust-store.`,
    );
  }
  tell?.(
    `${path} is not listed as your own store: runs, approvals and sandboxes that it records have no force. Add --trust-store if it is yours${copies ? "; otherwise they have no force in the copy either" : ""}.`,
  );
  return viewAsInherited(store);
}

async function readId(store: SessionStore): Promise<string | null> {
  // If the notes cannot be read, the store has no id and cannot be found on the list.
  const marks = await store.eraser.readMarks([ID_MARK]).catch(() => null);
  return marks?.get(ID_MARK) ?? null;
}

async function writeId(store: SessionStore): Promise<string> {
  const id = randomUUID();
  await store.eraser.writeMarks(new Map([[ID_MARK, id]]));
  return id;
}

/** The path without links; unchanged if nothing exists there. */
async function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}

/** Whether nothing is at a path: no file, or an empty directory. */
async function isEmpty(path: string): Promise<boolean> {
  if (!(await isThere(path))) return true;
  const names = await readdir(path).catch(() => null);
  return names !== null && names.length === 0;
}

/** Only ENOENT counts as missing: a store must not be created where one may exist but cannot be accessed. */
function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}
