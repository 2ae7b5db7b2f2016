import { SessionError } from "../../session/errors.ts";
import { SandboxError, type SandboxFailure } from "../../session/sandbox/sandbox.ts";

interface ClientError {
  readonly statusCode?: number;
  readonly name?: string;
  readonly message?: string;
  readonly cause?: { readonly code?: unknown };
}

const MESSAGE_CHARACTERS_SHOWN = 300;

/** What the client or the network reported, as a failure of a sandbox; the key is in no message, whoever repeats it. */
export function remoteFailure(
  error: unknown,
  options: { readonly domain?: string; readonly apiKey?: string },
  what: string,
): SessionError {
  if (error instanceof SessionError) return error;
  const { statusCode, name, message, cause } = (error ?? {}) as ClientError;
  const hide = (text: string): string => (options.apiKey ? text.replaceAll(options.apiKey, "***") : text);
  const said = hide(typeof message === "string" ? message : String(error)).slice(0, MESSAGE_CHARACTERS_SHOWN);
  const server = `The OpenSandbox server at ${hide(options.domain ?? "localhost:8080")}`;
  // The error itself may hold the whole answer of the server, so only its words are kept.
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
  return text.replace(/[.\s]*$/, ".");
}
