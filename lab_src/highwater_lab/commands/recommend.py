import click


@click.command()
def recommend_command() -> None:
    """X"""
