import { attachmentBytes, type Message, partsOf } from "../../session/message.ts";
import { show } from "../../session/errors.ts";
import { ModelError } from "./model-error.ts";

/** What providers say of an image, a file or a whole request that is too large. */
const MEDIA = /image|media|file|document|attachment|pdf|base64|payload|request|body/i;
const TOO_MUCH = /too (?:large|big|long|many)|exceed|maximum|at most|limit|dimension|\bsize\b/i;
const NAMED_MAX = 3;

/**
 * The error of a model for a request whose images or files are more than its provider takes, with the largest of them. Any other
 * error is returned unchanged.
 */
export function nameAttachments(error: unknown, messages: readonly Message[]): unknown {
  if (!(error instanceof ModelError) || !(error.kind === "invalid_request" || error.kind === "context_overflow"))
    return error;
  if (error.status !== 413 && !(MEDIA.test(error.message) && TOO_MUCH.test(error.message))) return error;
  const attachments = messages
    .flatMap(({ content }) => partsOf(content))
    .flatMap((part) => (part.type === "image" || part.type === "file" ? [part] : []))
    .map((part) => ({
      name: part.name ?? `${part.type} without a name, ${part.mediaType}`,
      bytes: attachmentBytes(part),
    }))
    .sort((one, other) => other.bytes - one.bytes);
  if (attachments.length === 0) return error;
  const total = attachments.reduce((sum, { bytes }) => sum + bytes, 0);
  const named = attachments.slice(0, NAMED_MAX).map(({ name, bytes }) => `${show(name)} (${bytes} bytes)`);
  const { kind, provider, status, retryAfterMs, cause } = error;
  return new ModelError(
    kind,
    `${error.message} The images and files of the request have ${total} bytes; the largest: ${named.join(", ")}.`,
    {
      provider,
      ...(status === null ? {} : { status }),
      ...(retryAfterMs === null ? {} : { retryAfterMs }),
      ...(cause === undefined ? {} : { cause }),
    },
  );
}
