import { withoutStop } from "../../internal/trim-text.ts";
import { SessionError } from "../../session/errors.ts";
import { type SandboxSpec, SandboxError, type SandboxFailure } from "../../session/sandbox/sandbox.ts";

/** Options of `openSandboxBackend`. */
export interface OpenSandboxOptions {
  /** The server, as `host:port` or as a URL (default `localhost:8080`). */
  readonly domain?: string;
  readonly apiKey?: string;
  /** The protocol if `domain` is not a URL (default `http`). */
  readonly protocol?: "http" | "https";
  /** Sends all requests through the server, for clients that cannot reach the sandboxes directly. */
  readonly useServerProxy?: boolean;
  /** Headers for every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The default image (`python:3.12` if not given). */
  readonly image?: string;
  /** How long the server keeps an idle sandbox (default half an hour); null: until it is closed. */
  readonly timeoutSeconds?: number | null;
  /** How long a sandbox may take to start (default 30 seconds). */
  readonly readyTimeoutSeconds?: number;
  /** The timeout of requests other than commands (default 30 seconds). */
  readonly requestTimeoutSeconds?: number;
  /** Resource limits in the server's form, such as `{ cpu: "1", memory: "2Gi" }`. */
  readonly resource?: Readonly<Record<string, string>>;
  /** Labels that the server stores with the sandbox, to filter its list. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Keeps the sandbox running after `close`, so that `attach` finds it until its timeout. */
  readonly keep?: boolean;
}

/** One event of a running command. */
export interface RemoteEvent {
  readonly type: string;
  readonly text?: string;
  readonly error?: Readonly<Record<string, unknown>>;
}

/** A directory item, as the server reports it. */
export interface RemoteFile {
  readonly path: string;
  readonly type?: "file" | "directory" | "symlink" | "other";
  readonly size?: number;
}

/** One sandbox of the server. Every failure is a `SandboxError`. */
export interface RemoteSandbox {
  readonly id: string;
  run(script: string, timeoutMs: number): AsyncIterable<RemoteEvent>;
  interrupt(commandId: string): Promise<void>;
  list(path: string, depth: number): Promise<readonly RemoteFile[]>;
  read(path: string): AsyncIterable<Uint8Array>;
  write(path: string, data: string | Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  /** Sets the sandbox's expiry to so many seconds from now. */
  renew(seconds: number): Promise<void>;
  createSnapshot(): Promise<string>;
  snapshotState(snapshotId: string): Promise<{ readonly state: string; readonly message?: string }>;
  kill(): Promise<void>;
  disconnect(): Promise<void>;
}

type Sdk = typeof import("@alibaba-group/opensandbox");
type SdkSandbox = Awaited<ReturnType<Sdk["Sandbox"]["connect"]>>;

const IMAGE = "python:3.12";
const DISCONNECT_MS_MAX = 1_000;

/** The default idle timeout of a sandbox. */
export const TIMEOUT_SECONDS = 1_800;

/** Starts a sandbox from an image or a snapshot. */
export function createRemote(
  options: OpenSandboxOptions,
  spec: SandboxSpec,
  snapshotId: string | null = null,
): Promise<RemoteSandbox> {
  return withSdk(options, "a new sandbox", async ({ Sandbox }) => {
    const created = await Sandbox.create({
      connectionConfig: connectionOf(options),
      ...(snapshotId === null ? { image: spec.image ?? options.image ?? IMAGE } : { snapshotId }),
      ...(spec.entrypoint === undefined ? {} : { entrypoint: [...spec.entrypoint] }),
      env: { ...spec.env },
      metadata: { ...options.metadata },
      ...(options.resource === undefined ? {} : { resource: { ...options.resource } }),
      timeoutSeconds: options.timeoutSeconds === undefined ? TIMEOUT_SECONDS : options.timeoutSeconds,
      ...readiness(options),
    });
    return remoteOf(created, options);
  });
}

/** Connects to a running or paused sandbox. */
export function connectRemote(options: OpenSandboxOptions, id: string): Promise<RemoteSandbox> {
  const what = `the sandbox ${id}`;
  return withSdk(options, what, async ({ Sandbox, SandboxManager }) => {
    const manager = SandboxManager.create({ connectionConfig: connectionOf(options) });
    const connection = { connectionConfig: connectionOf(options), sandboxId: id, ...readiness(options) };
    try {
      const { status } = await manager.getSandboxInfo(id);
      const paused = status.state === "Paused";
      return remoteOf(await (paused ? Sandbox.resume(connection) : Sandbox.connect(connection)), options);
    } finally {
      await waitBriefly(manager.close());
    }
  });
}

/** Removes a snapshot from the server. */
export function deleteRemoteSnapshot(options: OpenSandboxOptions, snapshotId: string): Promise<void> {
  return withSdk(options, `the snapshot ${snapshotId}`, async ({ SandboxManager }) => {
    const manager = SandboxManager.create({ connectionConfig: connectionOf(options) });
    try {
      // The client treats any empty response as success; only this call tells whether the snapshot existed.
      await manager.getSnapshot(snapshotId);
      await manager.deleteSnapshot(snapshotId);
    } finally {
      await waitBriefly(manager.close());
    }
  });
}

function remoteOf(sandbox: SdkSandbox, options: OpenSandboxOptions): RemoteSandbox {
  const { id, commands, files, sandboxes } = sandbox;
  const told = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw remoteFailure(error, options, `the sandbox ${id}`);
    });
  return {
    id,
    run: (script, timeoutMs) => events(commands.runStream(script, { timeoutSeconds: timeoutMs / 1000 }), options, id),
    interrupt: (commandId) => told(commands.interrupt(commandId)),
    list: (path, depth) => told(files.listDirectory({ path, depth }) as Promise<readonly RemoteFile[]>),
    read: (path) => events(files.readBytesStream(path), options, id),
    write: (path, data) => told(files.writeFiles([{ path, data, mode: 644 }])),
    renew: async (seconds) => void (await told(sandbox.renew(seconds))),
    createSnapshot: async () => (await told(sandboxes.createSnapshot(id, {}))).id,
    snapshotState: async (snapshotId) => (await told(sandboxes.getSnapshot(snapshotId))).status,
    kill: () => told(sandbox.kill()),
    disconnect: () => waitBriefly(sandbox.close()),
  };
}

async function* events<T>(stream: AsyncIterable<T>, options: OpenSandboxOptions, id: string): AsyncGenerator<T> {
  try {
    yield* stream;
  } catch (error) {
    throw remoteFailure(error, options, `the sandbox ${id}`);
  }
}

async function withSdk<T>(options: OpenSandboxOptions, what: string, work: (sdk: Sdk) => Promise<T>): Promise<T> {
  const sdk = await loadSdk();
  try {
    return await work(sdk);
  } catch (error) {
    throw remoteFailure(error, options, what);
  }
}

function connectionOf(options: OpenSandboxOptions) {
  const { domain = "localhost:8080", apiKey = "", protocol = "http", useServerProxy = false } = options;
  const { headers, requestTimeoutSeconds = 30 } = options;
  // All options are set explicitly: the client would read missing ones from the environment.
  return {
    domain,
    apiKey,
    protocol,
    useServerProxy,
    headers: { ...headers },
    requestTimeoutSeconds,
    disableMetrics: true,
  };
}

function readiness({ readyTimeoutSeconds = 30 }: OpenSandboxOptions) {
  return { readyTimeoutSeconds };
}

/** Waits for the client's connection pool to close, but only briefly: it waits for pending responses, which may never come. */
async function waitBriefly(closing: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DISCONNECT_MS_MAX);
  });
  await Promise.race([closing.catch(() => {}), late]);
  clearTimeout(timer);
}

async function loadSdk(): Promise<Sdk> {
  try {
    // Awaited inside of `try`, so that bundlers treat the package as optional.
    return await import("@alibaba-group/opensandbox");
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "The OpenSandbox backend needs a driver: install the package @alibaba-group/opensandbox, version 0.1.11 or later.",
      { cause },
    );
  }
}

interface ClientError {
  readonly statusCode?: number;
  readonly name?: string;
  readonly message?: string;
  readonly cause?: { readonly code?: unknown };
}

const MESSAGE_CHARACTERS_SHOWN = 300;

/** Converts an error of the client or the network to a `SandboxError`, and removes the API key from its message. */
function remoteFailure(
  error: unknown,
  options: { readonly domain?: string; readonly apiKey?: string },
  what: string,
): SessionError {
  if (error instanceof SessionError) return error;
  const { statusCode, name, message, cause } = (error ?? {}) as ClientError;
  const hide = (text: string): string => (options.apiKey ? text.replaceAll(options.apiKey, "***") : text);
  const said = hide(typeof message === "string" ? message : String(error)).slice(0, MESSAGE_CHARACTERS_SHOWN);
  const server = `The OpenSandbox server at ${hide(options.domain ?? "localhost:8080")}`;
  // Only the message is kept as the cause: the error itself may hold the whole response.
  const kept = { cause: new Error(said) };
  if (statusCode !== undefined && statusCode !== 0) {
    const { kind, text } = ofStatus(statusCode, what);
    return new SandboxError(kind, `${server} ${text} (${statusCode}: ${ended(said)})`, kept);
  }
  if (name === "SandboxReadyTimeoutException") {
    return new SandboxError("timeout", `${server} did not get ${what} ready in time: ${ended(said)}`, kept);
  }
  const code = typeof cause?.code === "string" ? ` (${cause.code})` : "";
  return new SandboxError("os_error", `${server} did not answer for ${what}${code}: ${ended(said)}`, kept);
}

function ofStatus(status: number, what: string): { readonly kind: SandboxFailure; readonly text: string } {
  if (status === 401 || status === 403) return { kind: "not_permitted", text: `refuses ${what}; check the API key` };
  if (status === 404 || status === 410) return { kind: "file_not_found", text: `does not know ${what}` };
  if (status === 405 || status === 501) return { kind: "unsupported", text: `cannot do this with ${what}` };
  if (status === 408 || status === 504) return { kind: "timeout", text: `did not answer in time for ${what}` };
  return { kind: "os_error", text: `failed for ${what}` };
}

function ended(text: string): string {
  return `${withoutStop(text)}.`;
}
