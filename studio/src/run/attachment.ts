import type { Content, ContentPart } from "../../../src/session/message.ts";

/** The maximum total size of the pictures of a message: a request may have 16 MiB, and base64 adds a third. */
export const BYTES_MAX = 11 * 1024 * 1024;

/** A picture to send. */
export type Attachment = Extract<ContentPart, { type: "image" | "file" }>;

/** The total size of pictures in bytes. */
export function bytesOf(attachments: readonly Attachment[]): number {
  return attachments.reduce((sum, { data }) => sum + Math.floor((data.length * 3) / 4), 0);
}

/** The content to send: the text alone, or with pictures. */
export function contentOf(text: string, attachments: readonly Attachment[]): Content {
  if (attachments.length === 0) return text;
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...attachments];
}

/** Reads a picture file. */
export async function readAttachment(file: File): Promise<Attachment> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return { type: "image", mediaType: file.type, data: url.slice(url.indexOf(",") + 1), name: file.name };
}
