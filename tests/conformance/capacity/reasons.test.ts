import {
  BatchWriteItemCommand,
  GetItemCommand,
  ProvisionedThroughputExceededException,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
  TransactionCanceledException,
} from '@aws-sdk/client-dynamodb'
import { ddb } from '../../src/client.js'
import { deleteTable, uniqueTableName } from '../../src/helpers.js'
import { create, fill, once, untilRefused } from './once.js'

// What a throttled request is told. Where a source says "documentation", the
// behaviour was read there and not seen on DynamoDB.
//
// - the exceptions and their fields: documentation, API reference,
//   "ThrottlingReason", and developer guide, "Diagnosing throttling"
// - the texts: seen on DynamoDB, apache/hadoop#1814 (2020) for a table, and
//   documentation, API reference, "TransactWriteItems", for both
const OF_TABLE =
  'The level of configured provisioned throughput for the table was exceeded. ' +
  'Consider increasing your provisioning level with the UpdateTable API.'

const one = { ReadCapacityUnits: 1, WriteCapacityUnits: 1 }
const plenty = { ReadCapacityUnits: 100, WriteCapacityUnits: 500 }
const names = {
  written: uniqueTableName('cap_written'),
  read: uniqueTableName('cap_read'),
  limited: uniqueTableName('cap_limited'),
  batch: uniqueTableName('cap_batch'),
  transaction: uniqueTableName('cap_txn'),
}

afterAll(async () => {
  await Promise.all(Object.values(names).map(deleteTable))
})

describe('Throttling reasons', () => {
  it('PutItem names the table and its write capacity', async () => {
    // source of the reason: documentation
    const table = await create({ TableName: names.written, ProvisionedThroughput: one })
    const { error } = await untilRefused(
      (number) =>
        once.send(
          new PutItemCommand({ TableName: names.written, Item: { pk: { S: `${number}` }, fill: fill(100) } }),
        ),
      10,
    )
    expect(error).toBeInstanceOf(ProvisionedThroughputExceededException)
    expect(error.message).toBe(OF_TABLE)
    expect(error.ThrottlingReasons).toEqual([
      { reason: 'TableWriteProvisionedThroughputExceeded', resource: table.TableArn },
    ])
  })

  it('GetItem names the table, and Query of an index the index, and their read capacity', async () => {
    // source of the reasons: documentation
    const table = await create({
      TableName: names.read,
      indexKey: 'kind',
      ProvisionedThroughput: { ...plenty, ReadCapacityUnits: 1 },
      GlobalSecondaryIndexes: [
        {
          IndexName: 'by_kind',
          KeySchema: [{ AttributeName: 'kind', KeyType: 'HASH' }],
          Projection: { ProjectionType: 'ALL' },
          ProvisionedThroughput: { ...plenty, ReadCapacityUnits: 1 },
        },
      ],
    })
    const key = { pk: { S: 'big' } }
    await ddb.send(
      new PutItemCommand({ TableName: names.read, Item: { ...key, kind: { S: 'k' }, fill: fill(300) } }),
    )
    const got = await untilRefused(
      () => once.send(new GetItemCommand({ TableName: names.read, Key: key, ConsistentRead: true })),
      40,
    )
    expect(got.error).toBeInstanceOf(ProvisionedThroughputExceededException)
    expect(got.error.ThrottlingReasons).toEqual([
      { reason: 'TableReadProvisionedThroughputExceeded', resource: table.TableArn },
    ])
    const queried = await untilRefused(
      () =>
        once.send(
          new QueryCommand({
            TableName: names.read,
            IndexName: 'by_kind',
            KeyConditionExpression: '#k = :k',
            ExpressionAttributeNames: { '#k': 'kind' },
            ExpressionAttributeValues: { ':k': { S: 'k' } },
          }),
        ),
      80,
    )
    expect(queried.error).toBeInstanceOf(ProvisionedThroughputExceededException)
    expect(queried.error.ThrottlingReasons).toEqual([
      {
        reason: 'IndexReadProvisionedThroughputExceeded',
        resource: table.GlobalSecondaryIndexes![0].IndexArn,
      },
    ])
  })

  it('an on-demand table above its own maximum answers ThrottlingException', async () => {
    // source: documentation. The maximum is a best effort there, so many
    // requests are sent at once, several times
    const table = await create({
      TableName: names.limited,
      BillingMode: 'PAY_PER_REQUEST',
      OnDemandThroughput: { MaxReadRequestUnits: 1, MaxWriteRequestUnits: 1 },
    })
    const put = (number: number) =>
      once.send(new PutItemCommand({ TableName: names.limited, Item: { pk: { S: `${number}` }, fill: fill(10) } }))
    let refused: any
    for (let round = 0; round < 20 && refused === undefined; round++) {
      const answers = await Promise.allSettled(Array.from({ length: 25 }, (_, number) => put(number)))
      refused = answers.find((answer) => answer.status === 'rejected')?.reason
    }
    expect(refused?.name).toBe('ThrottlingException')
    // this exception has the field with a small first letter
    expect(refused.throttlingReasons).toEqual([
      { reason: 'TableWriteMaxOnDemandThroughputExceeded', resource: table.TableArn },
    ])
  })

  it('BatchWriteItem returns what it could not write, and is throttled if it could write nothing', async () => {
    // source: documentation, API reference, "BatchWriteItem". Which exception
    // an on-demand table gets there is not documented
    const table = await create({ TableName: names.batch, ProvisionedThroughput: one })
    const write = () =>
      once.send(
        new BatchWriteItemCommand({
          RequestItems: {
            [names.batch]: Array.from({ length: 25 }, (_, number) => ({
              PutRequest: { Item: { pk: { S: `${number}` }, fill: fill(100) } },
            })),
          },
        }),
      )
    const first = await write()
    const left = first.UnprocessedItems?.[names.batch]?.length ?? 0
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(25)
    const { error } = await untilRefused(write, 5)
    expect(error).toBeInstanceOf(ProvisionedThroughputExceededException)
    expect(error.ThrottlingReasons).toEqual([
      { reason: 'TableWriteProvisionedThroughputExceeded', resource: table.TableArn },
    ])
  })

  it('TransactWriteItems is cancelled whole, with the throttle as the reason', async () => {
    // source: documentation, API reference, "TransactWriteItems"
    await create({ TableName: names.transaction, ProvisionedThroughput: one })
    const { error } = await untilRefused(
      (number) =>
        once.send(
          new TransactWriteItemsCommand({
            TransactItems: ['a', 'b'].map((part) => ({
              Put: {
                TableName: names.transaction,
                Item: { pk: { S: `${number}${part}` }, fill: fill(50) },
              },
            })),
          }),
        ),
      10,
    )
    expect(error).toBeInstanceOf(TransactionCanceledException)
    const codes = error.CancellationReasons.map((reason: { Code?: string }) => reason.Code)
    expect(codes).toContain('ProvisionedThroughputExceeded')
    for (const reason of error.CancellationReasons) {
      if (reason.Code !== 'None') expect(reason.Message).toBe(OF_TABLE)
    }
  })
})
