import {
  GetItemCommand,
  ProvisionedThroughputExceededException,
  PutItemCommand,
  UpdateItemCommand,
  type TableDescription,
} from '@aws-sdk/client-dynamodb'
import { deleteTable, uniqueTableName } from '../../src/helpers.js'
import { create, fill, once, untilRefused } from './once.js'

// An index with too little write capacity throttles the writes of its table,
// however much the table has. Source of all tests here: documentation,
// developer guide, "Understanding GSI write throttling and back pressure", and
// "Using global secondary indexes" for the writes that cost an index nothing.
// None was seen on DynamoDB.
const OF_INDEX =
  'The level of configured provisioned throughput for one or more global secondary indexes of the table was ' +
  'exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes with ' +
  'the UpdateTable API'
const name = uniqueTableName('cap_index')
let table: TableDescription
let held: { served: number; error: any }

const put = (pk: string, more = {}) =>
  once.send(new PutItemCommand({ TableName: name, Item: { pk: { S: pk }, fill: fill(100), ...more } }))

beforeAll(async () => {
  table = await create({
    TableName: name,
    indexKey: 'status',
    ProvisionedThroughput: { ReadCapacityUnits: 50, WriteCapacityUnits: 500 },
    GlobalSecondaryIndexes: [
      {
        IndexName: 'by_status',
        KeySchema: [{ AttributeName: 'status', KeyType: 'HASH' }],
        Projection: { ProjectionType: 'INCLUDE', NonKeyAttributes: ['fill'] },
        ProvisionedThroughput: { ReadCapacityUnits: 1, WriteCapacityUnits: 1 },
      },
    ],
  })
  held = await untilRefused((number) => put(`${number}`, { status: { S: `${number}` } }), 20)
})

afterAll(async () => {
  await deleteTable(name)
})

describe('Index back-pressure', () => {
  it('a write is throttled by the index, which the reason names', () => {
    expect(held.served).toBeGreaterThanOrEqual(1)
    expect(held.error).toBeInstanceOf(ProvisionedThroughputExceededException)
    expect(held.error.message).toBe(OF_INDEX)
    expect(held.error.ThrottlingReasons).toEqual([
      {
        reason: 'IndexWriteProvisionedThroughputExceeded',
        resource: table.GlobalSecondaryIndexes![0].IndexArn,
      },
    ])
  })

  it('nothing of the throttled write is in the table', async () => {
    const key = { pk: { S: `${held.served}` } }
    const got = await once.send(new GetItemCommand({ TableName: name, Key: key, ConsistentRead: true }))
    expect(got.Item).toBeUndefined()
  })

  it('an item without the key of the index is written', async () => {
    await put('sparse')
    const key = { pk: { S: 'sparse' } }
    const got = await once.send(new GetItemCommand({ TableName: name, Key: key, ConsistentRead: true }))
    expect(got.Item?.pk).toEqual({ S: 'sparse' })
  })

  it('a change of an attribute that the index does not contain is written', async () => {
    const updated = await once.send(
      new UpdateItemCommand({
        TableName: name,
        Key: { pk: { S: '0' } },
        UpdateExpression: 'SET #n = :n',
        ExpressionAttributeNames: { '#n': 'note' },
        ExpressionAttributeValues: { ':n': { S: 'seen' } },
        ReturnValues: 'UPDATED_NEW',
      }),
    )
    expect(updated.Attributes).toEqual({ note: { S: 'seen' } })
  })
})
