import {
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type CreateTableCommandInput,
  type TableDescription,
} from '@aws-sdk/client-dynamodb'
import { ddb } from '../../src/client.js'
import { waitUntilActive } from '../../src/helpers.js'

/** A client like the suite's, but without retries: a retry would hide what was throttled. */
export const once = new DynamoDBClient({
  endpoint: process.env.DYNAMODB_ENDPOINT,
  region: () => ddb.config.region(),
  credentials: ddb.config.credentials,
  maxAttempts: 1,
})

/** An attribute of `kilobytes` KB, to spend many units with few requests. */
export const fill = (kilobytes: number) => ({ S: 'x'.repeat(kilobytes * 1024 - 200) })

/** Create a table with the key `pk` (S), wait until it is active, and return its description. */
export async function create(
  input: Omit<CreateTableCommandInput, 'KeySchema' | 'AttributeDefinitions'> & { indexKey?: string },
): Promise<TableDescription> {
  const { indexKey, ...rest } = input
  const names = indexKey === undefined ? ['pk'] : ['pk', indexKey]
  await ddb.send(
    new CreateTableCommand({
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      AttributeDefinitions: names.map((name) => ({ AttributeName: name, AttributeType: 'S' })),
      ...rest,
    }),
  )
  await waitUntilActive(input.TableName!)
  const described = await ddb.send(new DescribeTableCommand({ TableName: input.TableName }))
  return described.Table!
}

/** Send requests one after another until one fails; return how many were served, and the error. */
export async function untilRefused(
  send: (number: number) => Promise<unknown>,
  most: number,
): Promise<{ served: number; error: any }> {
  for (let number = 0; number < most; number++) {
    try {
      await send(number)
    } catch (error) {
      return { served: number, error }
    }
  }
  throw new Error(`${most} requests were served, none was throttled`)
}
