"""Sessions, boards, commits, identity and rate limits on DynamoDB."""
