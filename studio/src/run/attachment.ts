import type { Client } from "skein/client";
import type { Attachment, Content, InlineAttachment } from "../../../src/session/message.ts";
import { isRaster } from "../markdown/safe-url.ts";

/** The maximum total size of pictures in a request: it may have 16 MiB, and base64 adds a third. */
const INLINE_BYTES_MAX = 11 * 1024 * 1024;

/** A file to send with the next message. */
export interface PendingFile {
  readonly key: number;
  readonly name: string;
  /** An object URL of a picture; null for other files. */
  readonly preview: string | null;
  /** How much of it was uploaded, from 0 to 1. */
  readonly progress: number;
  /** The part of the message; null during the upload. */
  readonly part: Attachment | null;
}

/** The content to send: the text alone, or with files. */
export function contentOf(text: string, files: readonly PendingFile[]): Content {
  const parts = files.flatMap(({ part }) => (part === null ? [] : [part]));
  if (parts.length === 0) return text;
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...parts];
}

/** Uploads a file to a session, and returns the part of a message that refers to it. */
export async function uploadFile(
  client: Client,
  sessionId: string,
  file: File,
  onProgress: (progress: number) => void,
): Promise<Attachment> {
  const mediaType = file.type === "" ? "application/octet-stream" : file.type;
  const about = { type: isRaster(mediaType) ? "image" : "file", mediaType, name: file.name } as const;
  try {
    const ref = await client.sessions.uploadBlob(sessionId, file, {
      onProgress: ({ sent, total }) => onProgress(total === 0 ? 1 : sent / total),
    });
    return { ...about, ...ref };
  } catch (error) {
    // A store without blobs keeps the data in its entries.
    if ((error as { code?: unknown }).code !== "NOT_SUPPORTED") throw error;
    if (file.size > INLINE_BYTES_MAX) throw new Error(`${file.name} is too large: this store takes up to 11 MiB.`);
    return { ...about, data: await base64Of(file) } satisfies InlineAttachment;
  }
}

async function base64Of(file: File): Promise<string> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(",") + 1);
}
