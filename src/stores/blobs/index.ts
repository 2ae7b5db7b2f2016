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
export { s3Blobs, type S3BlobsOptions } from "./s3-blobs.ts";
export type { S3Credentials } from "./s3-client.ts";
