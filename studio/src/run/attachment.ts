import type { Content, ContentPart } from "../../../src/session/message.ts";

/** The most bytes that the pictures of one message may have together: a request takes 16 MiB, and base64 takes a third more. */
export const BYTES_MAX = 11 * 1024 * 1024;

/** A picture that is to be sent. */
export type Attachment = Extract<ContentPart, { type: "image" | "file" }>;

/** How many bytes pictures have together. */
export function bytesOf(attachments: readonly Attachment[]): number {
  return attachments.reduce((sum, { data }) => sum + Math.floor((data.length * 3) / 4), 0);
}

/** What is said: the text alone, or with pictures. */
export function contentOf(text: string, attachments: readonly Attachment[]): Content {
  if (attachments.length === 0) return text;
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...attachments];
}

/** Reads a picture. */
export async function readAttachment(file: File): Promise<Attachment> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return { type: "image", mediaType: file.type, data: url.slice(url.indexOf(",") + 1), name: file.name };
}
