"""What a step costs on AWS, by a meter that counts what AWS bills."""
