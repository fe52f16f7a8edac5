// Writes to a table until it is throttled, and tells what the SDK made of it.
import {
  DynamoDBClient,
  ProvisionedThroughputExceededException,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";

const [endpoint, table, attempts] = process.argv.slice(2);
const client = new DynamoDBClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "000000000000", secretAccessKey: "local" },
  maxAttempts: Number(attempts),
});
let sent = 0;
let capacity = null;
try {
  while (sent < 1000) {
    const item = { id: { S: String(sent) }, fill: { S: "x".repeat(1500) } };
    const answer = await client.send(
      new PutItemCommand({ TableName: table, Item: item, ReturnConsumedCapacity: "INDEXES" }),
    );
    capacity = answer.ConsumedCapacity;
    sent += 1;
  }
} catch (error) {
  console.log(
    JSON.stringify({
      sent,
      capacity,
      name: error.name,
      isThroughputExceeded: error instanceof ProvisionedThroughputExceededException,
      reasons: error.ThrottlingReasons,
      attempts: error.$metadata.attempts,
      retryable: error.$retryable ?? null,
    }),
  );
}
