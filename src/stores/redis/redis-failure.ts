import { SessionError, StoreUnreachableError } from "../../session/errors.ts";

/** What the beginning of a server's refusal means. */
const REPLIES: Readonly<Record<string, string>> = {
  OOM: "has no memory left for another write (maxmemory); make room or give it more, and try again",
  READONLY: "is a replica that may only be read; connect to the primary",
  MISCONF:
    "takes no writes because it cannot save to its disk; make room there, let it write to its directory, and try again",
  NOAUTH: "asks for a password; put one in the URL, as in redis://:password@host:6379",
  WRONGPASS: "does not accept this user name and password; check those in the URL",
  NOPERM: "does not allow this user a command or key that the store needs; extend the user's access list",
  LOADING: "is still reading its data from disk; try again in a moment",
  MASTERDOWN: "is a replica without its primary; connect to the primary",
  NOREPLICAS: "takes no writes because too few replicas follow it; try again when they do",
  CLUSTERDOWN: "belongs to a cluster that is down; try again when all slots are served",
  MOVED: "is one node of a cluster; pass a client made for the whole cluster",
  CROSSSLOT: "belongs to a cluster, and this client does not send each key to its node; pass one made for clusters",
  BUSY: "is busy with a long script; try again in a moment",
};

const LOST =
  "was lost in the middle of a call; whether the call was carried out is not known, so make it again with the same ids";
const SILENT = "does not answer; check the URL and the network";
const AWAY = "cannot be reached just now; the store goes on trying, so try again in a moment";

/** What the code of a failed connection means, or the class of the error that a client throws over it. */
const CONNECTIONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "is not there: nothing listens at that address; check the URL and that the server runs",
  ENOTFOUND: "is not there: its host has no address; check the URL",
  EAI_AGAIN: "is not there: its host has no address just now; check the URL and the network",
  ETIMEDOUT: SILENT,
  ConnectionTimeoutError: SILENT,
  ECONNRESET: LOST,
  EPIPE: LOST,
  SocketClosedUnexpectedlyError: LOST,
  SocketTimeoutError: LOST,
  DisconnectsClientError: LOST,
  AbortError: LOST,
  ClientOfflineError: AWAY,
  ClientClosedError: AWAY,
  MaxRetriesPerRequestError: AWAY,
};

/** Problems that go away by themselves, as far as one can tell. */
const UNREACHABLE = [...Object.values(CONNECTIONS), REPLIES["LOADING"]];

/** Refusals of a server that can still be read. */
const WRITES_REFUSED = ["OOM", "READONLY", "MISCONF", "NOREPLICAS"].map((word) => REPLIES[word]);

/** What a client threw, as an error of ours; a mistake in the program itself stays what it is. */
export function redisFailure(error: unknown, address: string): unknown {
  if (error instanceof SessionError || !(error instanceof Error)) return error;
  const problem = problemOf(error);
  if (problem === null) return error;
  const message = `The Redis server ${address} ${problem}.`;
  return UNREACHABLE.includes(problem)
    ? new StoreUnreachableError(message, { cause: error })
    : new SessionError("STORE_FAILED", message, { cause: error });
}

/** Whether an error of ours says that the server takes no writes, though it can be read. */
export function isWriteRefused(error: unknown): boolean {
  if (!(error instanceof SessionError) || !(error.cause instanceof Error)) return false;
  return WRITES_REFUSED.includes(problemOf(error.cause) ?? "");
}

/** Whether a server was just not there, or not ready yet, so that it may answer in a moment. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const problem = problemOf(error);
  return problem === LOST || problem === REPLIES["LOADING"] || kindOf(error) === "ClientOfflineError";
}

function problemOf(error: Error): string | null {
  const { message } = error;
  const [word = ""] = message.split(" ", 1);
  if (Object.hasOwn(REPLIES, word)) return REPLIES[word] as string;
  return ["ErrorReply", "SimpleError", "BlobError", "ReplyError"].includes(kindOf(error))
    ? replyProblem(message)
    : connectionProblem(error);
}

function replyProblem(message: string): string {
  // A script that is refused a command names the refusal behind its own words.
  const inside = Object.keys(REPLIES).find((name) => message.includes(`-${name} `) || message.includes(` ${name} `));
  if (inside !== undefined) return REPLIES[inside] as string;
  if (/unknown command/i.test(message)) return "does not know a command that the store needs; use Redis 7 or Valkey";
  return `refused a command: ${message.replace(/\.$/, "")}`;
}

function connectionProblem(error: Error): string | null {
  const all = [error, ...(error instanceof AggregateError ? error.errors : [])] as { code?: unknown }[];
  const found = [kindOf(error), ...all.map(({ code }) => String(code))].find((name) =>
    Object.hasOwn(CONNECTIONS, name),
  );
  if (found !== undefined) return CONNECTIONS[found] as string;
  if (/^Connection is closed|^Stream isn't writeable/.test(error.message)) return LOST;
  if (/certificate|SSL|TLS/i.test(error.message))
    return "could not be reached over TLS; check its certificate and the URL";
  return null;
}

/** Clients name their errors by class, and not always by `name`. */
function kindOf(error: Error): string {
  return error.constructor.name;
}
