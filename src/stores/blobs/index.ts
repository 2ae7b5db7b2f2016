export type {
  BlobInput,
  BlobKey,
  BlobOptions,
  BlobRange,
  ListedBlob,
  BlobRef,
  BlobSource,
  BlobStore,
  FindBlob,
  StoredBlob,
  SweepBlobsOptions,
  SweptBlobs,
} from "../../session/blob.ts";
export type { Attachment, BlobAttachment, InlineAttachment } from "../../session/message.ts";
export { fileBlobs, type FileBlobsOptions } from "./file-blobs.ts";
