import { SessionError, StoreUnreachableError } from "../../session/errors.ts";

/** Error messages by the first word of an error reply. The text follows the address of the server. */
const REPLIES: Readonly<Record<string, string>> = {
  OOM: "has no memory left for another write (maxmemory); make room or give it more, and try again",
  READONLY: "is a read-only replica; connect to the primary",
  MISCONF:
    "accepts no writes because it cannot save to its disk; make room there, let it write to its directory, and try again",
  NOAUTH: "asks for a password; put one in the URL, as in redis://:password@host:6379",
  WRONGPASS: "does not accept this user name and password; check those in the URL",
  NOPERM: "does not allow this user a command or key that the store needs; extend the user's access list",
  LOADING: "is still reading its data from disk; try again in a moment",
  MASTERDOWN: "is a replica without its primary; connect to the primary",
  NOREPLICAS: "accepts no writes because too few replicas are connected; try again when they are",
  CLUSTERDOWN: "belongs to a cluster that is down; try again when all slots are served",
  MOVED: "is one node of a cluster; pass a client made for the whole cluster",
  CROSSSLOT: "belongs to a cluster, and this client does not send each key to its node; pass one made for clusters",
  BUSY: "is busy with a long script; try again in a moment",
};

const LOST =
  "lost the connection during a call, so it is unknown whether the call took effect; repeat it with the same ids";
const SILENT = "does not answer; check the URL and the network";
const RECONNECTING = "cannot be reached now; the store keeps reconnecting, so try again in a moment";

/** Error messages by the code of a failed connection, or by the class of the error that a client throws for it. */
const CONNECTIONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "cannot be reached: nothing listens at that address; check the URL and that the server runs",
  ENOTFOUND: "cannot be reached: its host name has no address; check the URL",
  EAI_AGAIN: "cannot be reached: its host name cannot be resolved now; check the URL and the network",
  ETIMEDOUT: SILENT,
  ConnectionTimeoutError: SILENT,
  ECONNRESET: LOST,
  EPIPE: LOST,
  SocketClosedUnexpectedlyError: LOST,
  SocketTimeoutError: LOST,
  DisconnectsClientError: LOST,
  AbortError: LOST,
  ClientOfflineError: RECONNECTING,
  ClientClosedError: RECONNECTING,
  MaxRetriesPerRequestError: RECONNECTING,
};

/** Replies of a server that is starting or busy, or during a failover. */
const PASSING = ["LOADING", "BUSY", "READONLY", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"];

/** Problems that may be temporary. */
const UNREACHABLE = [...Object.values(CONNECTIONS), ...PASSING.map((word) => REPLIES[word])];

/** Problems of a server that refuses writes but answers reads. */
const WRITES_REFUSED = ["OOM", "READONLY", "MISCONF", "NOREPLICAS"].map((word) => REPLIES[word]);

/** Converts an error of a client to a `SessionError`. Other errors, such as a `TypeError`, are returned unchanged. */
export function redisFailure(error: unknown, address: string): unknown {
  if (error instanceof SessionError || !(error instanceof Error)) return error;
  const problem = problemOf(error);
  if (problem === null) return error;
  const message = `The Redis server ${address} ${problem}.`;
  return UNREACHABLE.includes(problem)
    ? new StoreUnreachableError(message, { cause: error })
    : new SessionError("STORE_FAILED", message, { cause: error });
}

/** Whether a `SessionError` means that the server refuses writes but answers reads. */
export function isWriteRefused(error: unknown): boolean {
  if (!(error instanceof SessionError) || !(error.cause instanceof Error)) return false;
  return WRITES_REFUSED.includes(problemOf(error.cause) ?? "");
}

/** Whether a failure is temporary: the connection was lost or is not ready yet, so a retry may succeed in a moment. */
export function isTemporary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const problem = problemOf(error);
  return problem === LOST || problem === REPLIES["LOADING"] || classOf(error) === "ClientOfflineError";
}

function problemOf(error: Error): string | null {
  const { message } = error;
  const [word = ""] = message.split(" ", 1);
  if (Object.hasOwn(REPLIES, word)) return REPLIES[word] as string;
  return ["ErrorReply", "SimpleError", "BlobError", "ReplyError"].includes(classOf(error))
    ? replyProblem(message)
    : connectionProblem(error);
}

function replyProblem(message: string): string {
  // If a command inside a script fails, the reply begins with other words and contains the code of the failure later.
  const inside = Object.keys(REPLIES).find((name) => message.includes(`-${name} `) || message.includes(` ${name} `));
  if (inside !== undefined) return REPLIES[inside] as string;
  if (/unknown command/i.test(message)) return "does not know a command that the store needs; use Redis 7 or Valkey";
  return `refused a command: ${message.replace(/\.$/, "")}`;
}

function connectionProblem(error: Error): string | null {
  const all = [error, ...(error instanceof AggregateError ? error.errors : [])] as { code?: unknown }[];
  const found = [classOf(error), ...all.map(({ code }) => String(code))].find((name) =>
    Object.hasOwn(CONNECTIONS, name),
  );
  if (found !== undefined) return CONNECTIONS[found] as string;
  if (/^Connection is closed|^Stream isn't writeable/.test(error.message)) return LOST;
  if (/certificate|SSL|TLS/i.test(error.message))
    return "could not be reached over TLS; check its certificate and the URL";
  return null;
}

/** The class of an error: clients do not always set `name`. */
function classOf(error: Error): string {
  return error.constructor.name;
}
