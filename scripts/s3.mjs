import S3rver from "@20minutes/s3rver";

/**
 * A running server with the interface of S3, and what `s3Blobs` needs to use it.
 * @typedef {object} S3Server
 * @property {string} directory where it keeps its objects as files
 * @property {{ endpoint: string, bucket: string, credentials: { accessKeyId: string, secretAccessKey: string } }} options
 * @property {() => Promise<void>} stop
 */

/** The only credentials that this server takes; it checks each signature with them. */
const key = "S3RVER";

/**
 * Starts a server of S3 that keeps its objects in a directory.
 * @param {string} directory
 * @returns {Promise<S3Server>}
 */
export async function startS3(directory) {
  const bucket = "blobs";
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: bucket, configs: [] }],
  });
  const { port } = await server.run();
  return {
    directory,
    options: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket,
      credentials: { accessKeyId: key, secretAccessKey: key },
    },
    stop: async () => {
      await server.close();
    },
  };
}
